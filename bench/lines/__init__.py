"""Line-completion samples, as ctxbench or the InferCom paper's ProjBench defines them."""
