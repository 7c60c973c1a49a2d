/** The gateway as every test runs it: refused what the platform refuses and local workerd takes. */
import { env as bound } from "cloudflare:workers";
import worker, * as gateway from "../../src/index.ts";
import { limitBook, limitStorage } from "./platform-limits.ts";

limitBook(bound.DB);

export { KeptResponses, Payments, WebhookDeliveries } from "../../src/index.ts";
export class ConsoleSession extends gateway.ConsoleSession {
  constructor(ctx: DurableObjectState, env: Env) {
    limitStorage(ctx.storage);
    super(ctx, env);
  }
}
export class KeyRegister extends gateway.KeyRegister {
  constructor(ctx: DurableObjectState, env: Env) {
    limitStorage(ctx.storage);
    super(ctx, env);
  }
}
export class Wallet extends gateway.Wallet {
  constructor(ctx: DurableObjectState, env: Env) {
    limitStorage(ctx.storage);
    super(ctx, env);
  }
}
export class RegionOutbox extends gateway.RegionOutbox {
  constructor(ctx: DurableObjectState, env: Env) {
    limitStorage(ctx.storage);
    super(ctx, env);
  }
}
export class RegionMetrics extends gateway.RegionMetrics {
  constructor(ctx: DurableObjectState, env: Env) {
    limitStorage(ctx.storage);
    super(ctx, env);
  }
}

export default worker;
