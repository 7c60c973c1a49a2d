import { app } from "./app.ts";
import { runCron } from "./operator/scheduled.ts";

export { ConsoleSession } from "./console/console-session.do.ts";
export { KeptResponses } from "./models/stored-responses/stored-responses.do.ts";
export { KeyRegister } from "./accounts/keys/key-register.do.ts";
export { Payments } from "./money/payments/payments.do.ts";
export { RegionMetrics } from "./events/metrics/region-metrics.do.ts";
export { RegionOutbox } from "./regions/region-outbox.do.ts";
export { Wallet } from "./money/wallet/wallet.do.ts";
export { WebhookDeliveries } from "./events/webhooks/webhook-deliveries.do.ts";

export default {
  fetch: app.fetch,
  scheduled: ({ cron }, env) => runCron(cron, env),
} satisfies ExportedHandler<Env>;
