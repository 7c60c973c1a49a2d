import type { Config } from "../config.ts";
import { Isolate } from "../http/isolate.ts";
import { CallGroups } from "../lib/call-groups.ts";

import type { After } from "../lib/timers.ts";
import type { OutcomeItem } from "../contracts/outbox.ts";
import { WalletGroups } from "../wallet/grouped-wallet.ts";
import type { OutboxAt, WalletAt } from "./paid-request.ts";
import { objectsOf } from "../contracts/objects.ts";

/** What of this isolate's calls goes together. */
const makeGroups = () => ({
  wallets: new WalletGroups(),
  outboxes: new CallGroups<readonly OutcomeItem[], null>(),
});

/**
 * Whether requests are kept apart as in production, by a flag that is on there since 2024-10-14. The test runner has it
 * off, and its requests, objects and clocks in one: there every call goes alone.
 */
function areApart(): boolean {
  return Cloudflare.compatibilityFlags["handle_cross_request_promise_resolution"] === true;
}

/** The wallets of this region, as one request asks them: `env` and `after` are its own. */
export function walletsOf(config: Config, env: Env, after: After): WalletAt {
  const { wallets } = Isolate.of(config).get(makeGroups);
  return (orgId, attempt) => {
    const stub = () => objectsOf(env).wallet(orgId);
    return attempt === 1 && areApart() ? wallets.walletOf(orgId, stub, after) : stub();
  };
}

const STORED = { kind: "answered", answer: null } as const;

/** The outboxes of this region, by their names. */
export function outboxesOf(config: Config, env: Env, after: After): OutboxAt {
  const { outboxes } = Isolate.of(config).get(makeGroups);
  return (name, attempt) => {
    const stub = () => objectsOf(env).outbox(name);
    if (attempt > 1 || !areApart()) return stub();
    return {
      enqueue: (part) =>
        outboxes.ask(name, {
          part,
          alone: () =>
            stub()
              .enqueue(part)
              .then(() => null),
          together: (parts) =>
            stub()
              .enqueue(parts.flat())
              .then(() => parts.map(() => STORED)),
          after,
        }),
    };
  };
}
