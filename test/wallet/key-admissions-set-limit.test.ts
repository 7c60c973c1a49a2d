import { afterEach, beforeEach, expect, it } from "vitest";
import type { KeySecrets } from "../../src/shared/key.ts";
import type { KeyTerms } from "../../src/shared/key-terms.ts";
import { patchKey } from "../../src/operator/keys.ts";
import { shiftClock } from "../keys/key-fixture.ts";
import { context } from "../operator/operator-fixture.ts";
import {
  admission,
  siblingKey,
  burst,
  eventually,
  evict,
  gatedKey,
  setDatabaseLimit,
  MINUTE_MS,
  registerOf,
  setLimit,
  storedKey,
  WatchedRegisters,
} from "./key-admissions-fixture.ts";
import { valueOf } from "./wallet-fixture.ts";
import type { KeyRegisterMethods } from "../../src/shared/contracts/register.ts";

let registers: WatchedRegisters;

beforeEach(() => {
  registers = new WatchedRegisters();
});
afterEach(() => {
  registers.restore();
  shiftClock(null);
});

it("a wallet stores no limit for an unused key, and reads the limit when the key is first used", async () => {
  const key = await gatedKey({ rpmLimit: 60 });
  await setLimit(key, 3);
  expect(await storedKey(key)).toBeNull();
  expect(await burst(key, 5)).toBe(3);
});

it("a wallet ignores the limit from its first lookup if the limit changes during the lookup", async () => {
  const key = await gatedKey({ rpmLimit: 60 });
  registers.hold();
  const first = admission(key);
  await eventually(() => expect(registers.answeredCalls).toContain("identify"));
  await setLimit(key, 2);
  registers.open();
  expect(await first).toBe("admitted");
  expect(await burst(key, 5)).toBe(1);
  expect(registers.count("identify")).toBe(2);
});

it("a wallet ignores the limit from a repeated lookup if the limit changes during the lookup", async () => {
  const key = await gatedKey({ rpmLimit: 60 });
  expect(await admission(key)).toBe("admitted");
  registers.hold();
  shiftClock(MINUTE_MS + 1000);
  expect(await admission(key)).toBe("admitted");
  await eventually(() => expect(registers.answeredCalls).toContain("whose"));
  await setLimit(key, 2);
  registers.open();
  await siblingKey(key).then(admission); // the refresh is applied by then
  expect(await burst(key, 5)).toBe(1);
  expect(await storedKey(key)).toMatchObject({ rpm_limit: 2 });
});

it("an operator's new limit applies once the operator gets the response, despite concurrent lookups", async () => {
  const key = await gatedKey({ rpmLimit: 60 });
  const { booked, stub } = key;
  const [started, may] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const faked: Partial<KeyRegisterMethods> = {
    setSecrets: (secrets: KeySecrets) => registerOf(key).setSecrets(secrets),
    setTerms: (terms: KeyTerms) => registerOf(key).setTerms(terms),
    setLimit: async (limit: number) => {
      started.resolve();
      await may.promise;
      await registerOf(key).setLimit(limit);
    },
  };
  const register = () => faked as KeyRegisterMethods;
  await registerOf(key).whose(); // it has cached the key with the old limit
  const wallet = () => stub as never;
  const changing = patchKey({
    ...context(),
    register,
    wallet,
    params: { id: booked.orgId, key_id: booked.keyId },
    url: "",
    body: { rpm_limit: 2 },
    idempotencyKey: null,
  });
  await started.promise;
  expect(await burst(key, 1)).toBe(1);
  may.resolve();
  expect((await changing).ok).toBe(true);
  await evict(key);
  expect(await burst(key, 5)).toBe(1);
});

it("a wallet applies every key's new data after a refresh, even if many refreshes are concurrent", async () => {
  const first = await gatedKey({ rpmLimit: 60 });
  const keys = [first, ...(await Promise.all(Array.from({ length: 7 }, () => siblingKey(first))))];
  const all = <T>(call: (key: (typeof keys)[number]) => Promise<T>): Promise<T[]> =>
    Promise.all(keys.map(call));
  await all(admission);
  await all((key) => setDatabaseLimit(key, 9));
  registers.hold();
  await all(admission);
  valueOf(await first.stub.poke());
  await eventually(() =>
    expect(registers.answeredCalls.length).toBeGreaterThanOrEqual(2 * keys.length),
  );
  registers.open();
  await eventually(async () => {
    const limits = (await all(storedKey)).map((row) => row?.["rpm_limit"]);
    expect(limits).toEqual(keys.map(() => 9));
  });
});
