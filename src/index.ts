import { app } from "./app.ts";

export { KeyLimiter } from "./keys/key-limiter.do.ts";
export { RegionOutbox } from "./regions/region-outbox.do.ts";
export { Wallet } from "./wallet/wallet.do.ts";

export default { fetch: app.fetch } satisfies ExportedHandler<Env>;
