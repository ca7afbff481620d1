// Package window says which stretch of time the numbers of a run describe.
//
// A selector names a run and, after an @, a part of it ([Split], [Parse]); [Resolve] turns it into stretches of time.
// Without one the window is what the load generator itself said, else the traffic that package window/traffic found,
// else COMMAND (design document windows.md). All of it is arithmetic on what the caller knows: nothing is read here.
package window
