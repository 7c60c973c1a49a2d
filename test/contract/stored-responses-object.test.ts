import { env } from "cloudflare:workers";
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { KeptResponses } from "../../src/models/stored-responses/stored-responses.do.ts";
import { mintId } from "../../src/shared/id.ts";
import { setClock } from "../wallet/wallet-fixture.ts";
import { bindingsWith, errorOf, skipPauses } from "./client.ts";
import type { Account } from "./client.ts";
import {
  continuing,
  openStoringAccount,
  responsesObjectOf,
  storedRows,
  read,
  createResponse,
  slowBindings,
} from "./stored-responses-client.ts";
import { responseOf } from "./responses-client.ts";
import { HOUR_MS } from "../../src/shared/clock.ts";
import * as fc from "fast-check";
import { effortFor } from "../effort.ts";
import { STORED_HOURS, step, StoredConversations } from "./stored-conversations.ts";

const bounds = env as { KEPT_ANSWERS_MAX?: string; KEPT_BYTES_MAX?: string };

afterEach(() => {
  vi.restoreAllMocks();
  setClock(null);
  delete bounds.KEPT_ANSWERS_MAX;
  delete bounds.KEPT_BYTES_MAX;
});

const wake = (own: Account): Promise<boolean> => runDurableObjectAlarm(responsesObjectOf(own));

const lost = () => Promise.reject(new Error("lost"));

const ANYBODY = { memberId: null, keyId: null, sessionId: null };

const SECRET = "canary-of-a-conversation";

describe("the Durable Object for stored responses", () => {
  it("delays a continuation until the previous response is stored", async () => {
    const own = await openStoringAccount();
    const { bindings, kept } = slowBindings();
    const first = await responseOf(await createResponse(own.key, {}, bindings));
    const second = await responseOf(await createResponse(own.key, continuing(first.id), bindings));
    expect(second.previous_response_id).toBe(first.id);
    await vi.waitFor(() => expect(kept()).toBe(2));
  });

  it("doesn't delay a continuation of an old response", async () => {
    const own = await openStoringAccount();
    const id = mintId("resp_", Date.now() - HOUR_MS);
    const request = { previous: id, outputs: [], inputs: [] };
    const waits = vi.spyOn(globalThis, "setTimeout");
    expect(await responsesObjectOf(own).recall(request, ANYBODY)).toMatchObject({
      value: { links: null },
    });
    expect(waits.mock.calls.filter(([, ms]) => ms === 1200)).toEqual([]);
  });

  it.each([
    ["bytes", `["${"x".repeat(11_000_000)}"]`, "body_too_large"],
    ["values", JSON.stringify(Array.from({ length: 600_000 }, () => 0)), "invalid_request"],
  ])(
    "rejects a conversation with more %s than a request body can contain",
    async (_, text, kind) => {
      const own = await openStoringAccount();
      const ids = [mintId("resp_", Date.now()), mintId("resp_", Date.now())] as const;
      const by = { memberId: own.memberId, keyId: own.keyId, sessionId: null };
      const [input, response] = [text, "{}"].map((json) => new TextEncoder().encode(json));
      if (input === undefined || response === undefined) throw new Error("both are there");
      for (const [id, previous] of [
        [ids[0], null],
        [ids[1], ids[0]],
      ] as const) {
        const answer = { id, previous, by, createdAt: Date.now(), hours: 1, input, response };
        expect(await responsesObjectOf(own).keep(answer)).toMatchObject({ ok: true });
      }
      const one = { previous: ids[0], outputs: [], inputs: [] };
      expect(await responsesObjectOf(own).recall(one, ANYBODY)).toMatchObject({ ok: true });
      const both = await responsesObjectOf(own).recall({ ...one, previous: ids[1] }, ANYBODY);
      expect(both).toMatchObject({ ok: false, failure: { kind } });
    },
  );

  it("never stores content in plain text", async () => {
    const own = await openStoringAccount();
    const input = [{ role: "user", content: SECRET }];
    await responseOf(await createResponse(own.key, { input, metadata: { of: SECRET } }));
    await vi.waitFor(async () => expect((await storedRows(own))["answers"]).toHaveLength(1));
    const rows = JSON.stringify(await storedRows(own));
    expect(rows.length).toBeGreaterThan(1000);
    for (const text of [SECRET, btoa(SECRET), "output_text", "sandbox/echo"]) {
      expect(rows).not.toContain(text);
    }
  });

  it("deletes expired responses in an alarm, and deletes the encryption key with the last response", async () => {
    const own = await openStoringAccount(2);
    const { id } = await responseOf(await createResponse(own.key));
    await vi.waitFor(async () => expect((await storedRows(own))["parts"]).toHaveLength(2));
    setClock(Date.now() + 2 * HOUR_MS);
    await errorOf(await createResponse(own.key, continuing(id)), 400);
    expect(await wake(own)).toBe(true);
    expect(await storedRows(own)).toMatchObject({ answers: [], parts: [], data_keys: [] });
    setClock(null);
    const again = await responseOf(await createResponse(own.key));
    expect((await read(again.id, own.key)).status).toBe(200);
  });

  it.each([
    ["number", "KEPT_ANSWERS_MAX", "2"],
    ["bytes", "KEPT_BYTES_MAX", "3000"],
  ] as const)("deletes the oldest responses beyond the maximum %s", async (_, name, most) => {
    bounds[name] = most;
    const own = await openStoringAccount();
    const ids: string[] = [];
    for (const input of ["one", "two", "three", "four"]) {
      const { id } = await responseOf(await createResponse(own.key, { input }));
      expect((await read(id, own.key)).status).toBe(200);
      ids.push(id);
    }
    const remaining = (await storedRows(own))["answers"] as { id: string; bytes: number }[];
    expect(remaining.map(({ id }) => id)).toEqual(ids.slice(2));
    setClock(Date.now() + HOUR_MS);
    await errorOf(await read(ids[0] ?? "", own.key), 404);
  });

  it("re-encrypts its data key within an hour after KEY_SECRETS gets a new secret", async () => {
    const own = await openStoringAccount();
    const { id } = await responseOf(await createResponse(own.key));
    await vi.waitFor(async () => expect((await storedRows(own))["answers"]).toHaveLength(1));
    const newer = `z:${"newer-secret-".padEnd(40, "0123456789")}`;
    const seeing = (secrets: string) =>
      runInDurableObject(responsesObjectOf(own), (object: KeptResponses) => {
        Object.defineProperty(object, "env", {
          value: { ...env, KEY_SECRETS: secrets },
          configurable: true,
        });
      });
    await seeing(`${newer},${env.KEY_SECRETS}`);
    await wake(own);
    const keys = (await storedRows(own))["data_keys"];
    expect(keys).toEqual([{ number: 1, sealed: expect.stringMatching(/^z\./) as string }]);

    await evictDurableObject(responsesObjectOf(own));
    await seeing(newer);
    expect((await read(id, own.key)).status).toBe(200);
    await seeing(`y:${"lost-secret-".padEnd(40, "0123456789")}`);
    await evictDurableObject(responsesObjectOf(own));
    await seeing(`y:${"lost-secret-".padEnd(40, "0123456789")}`);
    const alerts = vi.spyOn(console, "error").mockImplementation(() => undefined);
    expect((await errorOf(await read(id, own.key), 503)).code).toBe("storage_unavailable");
    expect(alerts.mock.calls.flat().join()).toContain("kept_response_unreadable");
  });

  it("causes 503 for continuations during an outage, and stores pending responses afterwards", async () => {
    skipPauses();
    const own = await openStoringAccount();
    const { id } = await responseOf(await createResponse(own.key));
    let attempts = 0;
    const failing = {
      getByName: (name: string) => ({
        recall: lost,
        keep: (...args: Parameters<KeptResponses["keep"]>) =>
          attempts++ < 4 ? lost() : env.KEPT_RESPONSES.getByName(name).keep(...args),
      }),
    };
    const bindings = bindingsWith({ KEPT_RESPONSES: failing });
    const error = await errorOf(await createResponse(own.key, continuing(id), bindings), 503);
    expect(error.code).toBe("storage_unavailable");
    const second = await responseOf(await createResponse(own.key, {}, bindings));
    await vi.waitFor(async () => expect((await storedRows(own))["answers"]).toHaveLength(2));
    expect((await read(second.id, own.key)).status).toBe(200);
  });
});

afterEach(() => {
  vi.restoreAllMocks();
  setClock(null);
});

it("the provider receives the same request for a stored conversation as for a conversation sent in full", async () => {
  const property = fc.asyncProperty(
    fc.array(step, { minLength: 2, maxLength: effortFor(8, 16) }),
    async (steps) => {
      vi.restoreAllMocks();
      setClock(null);
      const conversations = new StoredConversations(await openStoringAccount(STORED_HOURS));
      for (const one of steps) await conversations.run(one);
    },
  );
  const { counterexample, errorInstance } = await fc.check(property, {
    numRuns: effortFor(5, 150),
  });
  expect(counterexample, String(errorInstance)).toBeNull();
});
