// Package process records what a command, the load generator, and its machine are doing: CPU, memory, threads and
// descriptors of its process tree, and CPU, memory and network of the host, read from /proc.
//
//	if process.Available() {
//		s := process.New(process.Options{})
//		s.Follow(cmd.Process.Pid) // once it was started
//		s.Poll(ctx, now, &snapshot)
//	}
//
// A process is of the tree when its parent was, or when the command is the head of its process group: it stays so when
// its parent ends before it. What a process used that lived between two polls alone is known once its parent has waited
// for it.
package process
