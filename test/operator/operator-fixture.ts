import { env } from "cloudflare:workers";
import type { OperatorContext } from "../../src/operator/operator-context.ts";
import { objectsOf } from "../../src/shared/contracts/objects.ts";
import { keySecrets } from "../keys/key-fixture.ts";

export function context(): OperatorContext {
  return {
    db: env.DB,
    region: "eu",
    peers: ["us"],
    version: "test",
    requestId: "req_test",
    role: "all",
    priceLeadMs: 3_600_000,
    aliases: new Map([["smart", "sandbox/echo"]]),
    names: { entryOf: (name) => (name.startsWith("sandbox/") ? name : null), isAlias: () => false },
    models: new Map(),
    providers: new Set(),
    checkPeer: () =>
      Promise.resolve({ url: "https://us.test", fault: null, rttMs: 1, lastOkMs: 1 }),
    breakers: [{ route: "up:m", state: "open", untilMs: 0 }],
    keySecrets: keySecrets(),
    now: Date.now(),
    actor: { kind: "operator", id: "admin" },
    ...objectsOf(env),
    companyDomains: "approve",
    mail: null,
    takeEvents: () => undefined,
    paymentOf: (id) => Promise.resolve(id),
  };
}
