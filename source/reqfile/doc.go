// Package reqfile reads the files in which servers tell of their requests: SGLang's request metrics, TensorRT-LLM's
// performance metrics, Dynamo's request trace and Triton's trace.
//
//	r := reqfile.NewReader(reqfile.SGLang, record)
//	err := r.Read(ctx, file)
//	fmt.Println(r.Counts())
//
// Only fields of a list are decoded. Those that hold prompts, payloads and tensors are read over where they stand.
// A line that cannot be read, or tells what cannot be, is counted and named by its number; its text is never shown.
//
// [Follow] reads the files of a folder while the server appends to them, through rotation and truncation, and takes
// each record once.
package reqfile
