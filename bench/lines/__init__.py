"""Line-completion samples as the InferCom paper's ProjBench defines them: candidates, leaks, cuts, the build."""
