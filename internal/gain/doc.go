// Package gain tells what the series of a recording gained, sample by sample, restarts included: the one arithmetic of
// all tables of samples.
package gain
