// Package mcp answers the questions of an agent about recorded runs, over the Model Context Protocol on two streams.
//
// A tool is a command line of ours whose JSON is cut into pages: nothing is computed here, so an agent reads the
// numbers that a person does. Only the lists of runs and of raw samples, which no command prints, are read from
// recordings.
//
// No tool writes, records or opens a connection, and paths lead below the roots. What servers sent is data of
// strangers: control characters are escaped, long texts cut, and each answer begins with a word about that.
package mcp
