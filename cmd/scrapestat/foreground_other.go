//go:build !unix

package main

// inForeground reports whether the terminal is ours: there are no jobs here.
func inForeground(any) bool { return true }

// terminalWidth is not known here.
func terminalWidth(any) int { return 0 }
