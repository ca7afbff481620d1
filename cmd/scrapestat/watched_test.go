package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
)

// watchedMain is the command, which besides answers each line of stdin by how
// many goroutines it has, the one that answers among them.
func watchedMain() {
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Println(runtime.NumGoroutine())
		}
	}()
	main()
}
