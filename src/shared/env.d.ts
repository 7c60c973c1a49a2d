/** Vars and secrets that a deployment may leave out; `config.ts` says what each means. */
interface __BaseEnv_Env {
  SANDBOX?: string;
  CLOCK_OFFSET_MS?: string;
  ANALYTICS?: AnalyticsEngineDataset;
}
