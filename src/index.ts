import { app } from "./app.ts";
import { runCron } from "./operator/scheduled.ts";

export { ConsoleSession } from "./console/console-session.do.ts";
export { KeptResponses } from "./kept/kept-responses.do.ts";
export { KeyRegister } from "./keys/key-register.do.ts";
export { Payments } from "./payments/payments.do.ts";
export { RegionMetrics } from "./metrics/region-metrics.do.ts";
export { RegionOutbox } from "./regions/region-outbox.do.ts";
export { Wallet } from "./wallet/wallet.do.ts";
export { WebhookDeliveries } from "./webhooks/webhook-deliveries.do.ts";

export default {
  fetch: app.fetch,
  scheduled: ({ cron }, env) => runCron(cron, env),
} satisfies ExportedHandler<Env>;
