interface __BaseEnv_Env {
  SANDBOX?: string;
  CLOCK_OFFSET_MS?: string;
  ANALYTICS?: AnalyticsEngineDataset;
}
