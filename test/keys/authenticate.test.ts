import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import type { KeyAdmissionDeps } from "../../src/accounts/keys/authenticate.ts";
import { admitting, authenticateBy, keySecrets, makeKey } from "./key-fixture.ts";

function authenticate(
  authorization: string | null,
  options: Partial<KeyAdmissionDeps> = {},
): ReturnType<typeof authenticateBy> {
  return authenticateBy({
    authorization,
    keySecrets: keySecrets(),
    ...admitting(),
    ...options,
  });
}

type Failing<Stub> = { readonly createdCount: () => number; readonly stub: (name: string) => Stub };

/**
 * Returns stubs whose calls throw these errors in order, then real ones. Counts the created stubs.
 */
function failing<Stub>(errors: readonly object[], real: (name: string) => Stub): Failing<Stub> {
  let count = 0;
  const stub = (name: string): Stub => {
    const error = errors[count];
    count++;
    if (error === undefined) return real(name);
    const call = (): Promise<never> => Promise.reject(Object.assign(new Error("lost"), error));
    return { whose: call, admit: call } as Stub;
  };
  return { createdCount: () => count, stub };
}

const registerOf = (hash: string): ReturnType<KeyAdmissionDeps["register"]> =>
  env.KEY_REGISTER.getByName(hash);
const { wallet: walletOf } = admitting();
/** A key object in another region, with this region's database. */
const registerAway = (hash: string): ReturnType<KeyAdmissionDeps["register"]> => {
  const register = env.KEY_REGISTER.getByName(hash);
  return { whose: () => register.whose(), admit: () => register.admit() };
};

const FAULTS = [
  ["it retries a retryable error once with a new stub", [{ retryable: true }], 2, "admitted"],
  [
    "it doesn't retry a second retryable error",
    [{ retryable: true }, { retryable: true }],
    2,
    "storage_unavailable",
  ],
  [
    "it doesn't call an overloaded object again",
    [{ overloaded: true, retryable: true }],
    1,
    "overloaded",
  ],
  [
    "it returns overloaded if the object is overloaded at the retry",
    [{ retryable: true }, { overloaded: true }],
    2,
    "overloaded",
  ],
  ["it returns storage_unavailable for any other error", [{}], 1, "storage_unavailable"],
] as const;

/** The failing object, the scope of the key, and the options of a caller with failing stubs. */
const OBJECTS = [
  ["the key's Durable Object", "regional", (stub: Stubs) => ({ register: stub(registerOf) })],
  ["the wallet", "regional", (stub: Stubs) => ({ wallet: stub(walletOf) })],
  [
    "the key's Durable Object in another region",
    "global",
    (stub: Stubs) => ({ region: "us" as const, register: stub(registerAway) }),
  ],
] as const;
type Stubs = <Stub>(real: (name: string) => Stub) => (name: string) => Stub;

describe.each(OBJECTS)(
  "the authentication of a key during a failure of %s",
  (_object, scope, options) => {
    it.each(FAULTS)(
      "handles the failure when the key is first used: %s",
      async (_name, errors, stubs, outcome) => {
        const { key } = await makeKey({ scope });
        const counts: (() => number)[] = [];
        const stub: Stubs = (real) => {
          const failed = failing(errors, real);
          counts.push(failed.createdCount);
          return failed.stub;
        };
        const answer = await authenticate(`Bearer ${key}`, options(stub));
        expect(answer.ok ? "admitted" : answer.failure.kind).toBe(outcome);
        expect(counts.map((count) => count())).toEqual([stubs]);
      },
    );
  },
);
