import type { ConsoleSessionMethods } from "./console-session.ts";
import type { WebhookDeliveriesMethods } from "./deliveries.ts";
import type { StoredResponsesMethods } from "./stored-responses.ts";
import type { RegionMetricsMethods } from "./metrics.ts";
import type { RegionOutboxMethods } from "./outbox.ts";
import type { PaymentsMethods } from "./payments.ts";
import type { KeyRegisterMethods } from "./register.ts";
import type { WalletMethods } from "./wallet.ts";

/**
 * Functions that return new stubs of this region's Durable Objects. A stub is unusable after an
 * exception.
 */
export type Objects = {
  readonly wallet: (orgId: string) => WalletMethods;
  readonly register: (keyHash: string) => KeyRegisterMethods;
  readonly outbox: (name: string) => RegionOutboxMethods;
  readonly consoles: (account: string) => ConsoleSessionMethods;
  readonly kept: (orgId: string) => StoredResponsesMethods;
  readonly deliveries: (orgId: string) => WebhookDeliveriesMethods;
  readonly payments: (orgId: string) => PaymentsMethods;
  readonly metrics: () => RegionMetricsMethods;
};

/** Functions that return stubs with only the listed methods. */
export type StubGetters<
  Kind extends keyof Objects,
  Call extends keyof ReturnType<Objects[Kind]>,
> = {
  readonly [K in Kind]: (name: string) => Pick<ReturnType<Objects[K]>, Call>;
};

/** Returns the Durable Object stubs of this region's jurisdiction. */
export function objectsOf(env: Env): Objects {
  const within = <T extends Rpc.DurableObjectBranded | undefined>(
    namespace: DurableObjectNamespace<T>,
  ): DurableObjectNamespace<T> => {
    // Local workerd doesn't support jurisdictions (cloudflare/workerd#4167).
    const { JURISDICTION } = env;
    return JURISDICTION
      ? namespace.jurisdiction(JURISDICTION as DurableObjectJurisdiction)
      : namespace;
  };
  return {
    wallet: (orgId) => within(env.WALLET).getByName(orgId),
    register: (keyHash) => within(env.KEY_REGISTER).getByName(keyHash),
    outbox: (name) => within(env.REGION_OUTBOX).getByName(name),
    consoles: (account) => within(env.CONSOLE_SESSION).getByName(account),
    kept: (orgId) => within(env.KEPT_RESPONSES).getByName(orgId),
    deliveries: (orgId) => within(env.WEBHOOK_DELIVERIES).getByName(orgId),
    payments: (orgId) => within(env.PAYMENTS).getByName(orgId),
    metrics: () => within(env.REGION_METRICS).getByName("region"),
  };
}
