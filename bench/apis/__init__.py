"""The API base: functions as others call them, with usage examples, signatures and summaries (InferCom paper)."""
