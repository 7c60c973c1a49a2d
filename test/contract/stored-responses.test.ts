import { runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { setClock } from "../wallet/wallet-fixture.ts";
import { addKey, addMember, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { countedBindings } from "./counted-bindings.ts";
import {
  continuing,
  setStorageHours,
  openStoringAccount,
  responsesObjectOf,
  storedRows,
  read,
  createResponse,
  slowBindings,
} from "./stored-responses-client.ts";
import { createKey } from "./key-client.ts";
import { responseOf, mockOpenAi, replied, SAID } from "./responses-client.ts";
import { createSession } from "./session-client.ts";
import { HOUR_MS } from "../../src/shared/clock.ts";

afterEach(() => {
  vi.restoreAllMocks();
  setClock(null);
});

const forget = (id: string, key: string): Promise<Response> =>
  send(`/v1/responses/${id}`, { method: "DELETE", key });
const wake = (own: Account): Promise<boolean> => runDurableObjectAlarm(responsesObjectOf(own));

describe("an organization that stores responses", () => {
  it("can read a response, and can continue immediately with previous_response_id", async () => {
    const own = await openStoringAccount();
    const first = await responseOf(await createResponse(own.key, { instructions: "Never again." }));
    expect(first).toMatchObject({ store: true, previous_response_id: null });
    const second = await responseOf(await createResponse(own.key, continuing(first.id)));
    expect(second).toMatchObject({ store: true, previous_response_id: first.id });
    expect(second.instructions).toBeNull();
    expect(await (await read(second.id, own.key)).json()).toEqual(second);
  });

  it("gets the position in its own body for an invalid item of a continuation", async () => {
    const own = await openStoringAccount();
    const first = await responseOf(await createResponse(own.key));
    const input = [
      { role: "user", content: "Hi" },
      { role: "user", content: [{ type: "unknown" }] },
    ];
    const body = { ...continuing(first.id), input };
    const error = await errorOf(await createResponse(own.key, body), 400);
    expect(error.param).toBe("input[1].content[0].type");
    expect(error.message).toContain("input[1].content[0].type");
  });

  it("can list a response's input items in pages, with IDs that later requests can reference", async () => {
    const own = await openStoringAccount();
    const first = await responseOf(await createResponse(own.key));
    const second = await responseOf(await createResponse(own.key, continuing(first.id)));
    const page = async (query: string) => {
      const response = await read(second.id, own.key, `/input_items${query}`);
      expect(response.status).toBe(200);
      return response.json<{ data: { id: string }[]; last_id: string; has_more: boolean }>();
    };
    const whole = await page("?order=asc");
    expect(whole).toMatchObject({
      object: "list",
      data: [
        { type: "message", role: "user", content: [{ type: "input_text", text: "Hello there" }] },
        first.output[0],
        { type: "message", role: "user", content: [{ type: "input_text", text: "And now?" }] },
      ],
      first_id: whole.data[0]?.id,
      last_id: whole.data[2]?.id,
      has_more: false,
    });
    const newest = await page("?limit=2");
    expect([newest.data, newest.has_more]).toEqual([whole.data.toReversed().slice(0, 2), true]);
    const rest = await page(`?limit=2&after=${newest.last_id}`);
    expect([rest.data, rest.has_more]).toEqual([whole.data.slice(0, 1), false]);
    const input = [{ type: "item_reference", id: whole.data[2]?.id }];
    expect(await responseOf(await createResponse(own.key, { input }))).toMatchObject({
      output: [{ content: [{ text: "And now?" }] }],
    });
    const wrong = await errorOf(await read(second.id, own.key, "/input_items?after=msg_1"), 400);
    expect(wrong.param).toBe("after");
  });

  it("can delete a response permanently, which also prevents continuations", async () => {
    const own = await openStoringAccount();
    const first = await responseOf(await createResponse(own.key));
    const second = await responseOf(await createResponse(own.key, continuing(first.id)));
    const gone = { id: first.id, object: "response.deleted", deleted: true };
    expect(await (await forget(first.id, own.key)).json()).toEqual(gone);
    for (const id of [first.id, second.id]) {
      const error = await errorOf(await createResponse(own.key, continuing(id)), 400);
      expect(error.code).toBe("previous_response_not_found");
    }
    const input = [{ type: "item_reference", id: first.output[0]?.id }];
    await errorOf(await createResponse(own.key, { input }), 400);
    for (const more of ["", "/input_items"]) {
      const missing = await errorOf(await read(first.id, own.key, more), 404);
      expect(missing.message).toBe(`Response with id '${first.id}' not found.`);
    }
    await errorOf(await read(second.id, own.key, "/input_items"), 404);
    await errorOf(await forget(first.id, own.key), 404);
    const answer = {
      id: first.id,
      previous: null,
      by: { memberId: own.memberId, keyId: own.keyId, sessionId: null },
      createdAt: Date.now(),
      hours: 24,
      input: new Uint8Array(2),
      response: new Uint8Array(2),
    };
    // an attempt that arrives late
    expect(await responsesObjectOf(own).keep(answer)).toMatchObject({ ok: true });
    await errorOf(await read(first.id, own.key), 404);
  });

  it("stores neither failed responses nor responses with store: false, which return store: false", async () => {
    const own = await openStoringAccount();
    const { id, store } = await responseOf(await createResponse(own.key, { store: false }));
    expect(store).toBe(false);
    const poor = await openAccount({ credits: 700 });
    await setStorageHours(poor, 24);
    const failed = await responseOf(await createResponse(poor.key, { input: "word ".repeat(100) }));
    expect([failed.status, failed.store]).toEqual(["failed", false]);
    setClock(Date.now() + HOUR_MS); // no request waits for these responses anymore
    await errorOf(await read(id, own.key), 404);
    await errorOf(await read(failed.id, poor.key), 404);
  });

  it("gets 400 when reading a stored response as a stream", async () => {
    const own = await openStoringAccount();
    const { id } = await responseOf(await createResponse(own.key));
    expect((await errorOf(await read(id, own.key, "?stream=true"), 400)).param).toBe("stream");
  });

  it("stores nothing at the provider, and continuations include reasoning that the client didn't request", async () => {
    const { calls, bindings } = mockOpenAi(() => replied(SAID.json));
    const own = await openStoringAccount();
    const first = await responseOf(await createResponse(own.key, { model: "mock/own" }, bindings));
    const thought = first.output.find(({ type }) => type === "reasoning");
    expect(thought).toMatchObject({ summary: [], encrypted_content: null });
    const call = first.output.find((item) => item.type === "function_call");
    const output = { type: "function_call_output", call_id: call?.call_id, output: "4" };
    await responseOf(
      await createResponse(
        own.key,
        { ...continuing(first.id), model: "mock/own", input: [output] },
        bindings,
      ),
    );
    expect(calls.map(({ body }) => body["store"])).toEqual([false, false]);
    expect(calls[1]?.body["input"]).toContainEqual(expect.objectContaining({ type: "reasoning" }));
    const whole = await read(first.id, own.key, "?include[]=reasoning.encrypted_content");
    expect(JSON.stringify(await whole.json())).toContain("tk1.");
    expect(await (await read(first.id, own.key)).json()).toEqual(first);
  });
});

describe("an organization that does not store responses", () => {
  it("gets store: false, and an error that names the setting to change", async () => {
    const { key } = await openAccount();
    const { id, store, output } = await responseOf(await createResponse(key, { store: true }));
    expect(store).toBe(false);
    const error = await errorOf(await createResponse(key, continuing(id)), 400);
    expect(error).toMatchObject({
      param: "previous_response_id",
      code: "previous_response_not_found",
      message: expect.stringMatching(
        new RegExp(`^Previous response with id '${id}' not found\\. .*keep_responses_hours`),
      ) as string,
    });
    const input = [
      { role: "user", content: "Hi" },
      { id: output[0]?.id, type: "item_reference" },
    ];
    const named = await errorOf(await createResponse(key, { input }), 400);
    expect(named.param).toBe("input[1].id");
    expect(named.message).toContain(`Item with id '${output[0]?.id}' not found.`);
    expect(named.message).toContain("keep_responses_hours");
    expect(named.message).toContain("providerOptions.openai.store = false");
    await errorOf(await read(id, key), 404);
  });

  it("needs only two wallet calls per request", async () => {
    const own = await openAccount();
    const counted = countedBindings();
    await responseOf(await createResponse(own.key, {}, counted.bindings));
    [counted.objects, counted.statements] = [0, 0];
    await responseOf(await createResponse(own.key, {}, counted.bindings));
    expect([counted.objects, counted.statements]).toEqual([2, 0]);
    await setStorageHours(own, 1);
    const first = await responseOf(await createResponse(own.key, {}, counted.bindings));
    await read(first.id, own.key); // the response is stored by then
    counted.objects = 0;
    const second = await responseOf(
      await createResponse(own.key, continuing(first.id), counted.bindings),
    );
    await read(second.id, own.key);
    // admission, stored response, hold and settlement, then the storing of its own response
    expect([counted.objects, counted.statements]).toEqual([5, 0]);
  });
});

/** Returns the statuses of a key that continues a response, reads it and lists its input. */
const may = async (key: string, id = ""): Promise<readonly number[]> => [
  (await createResponse(key, continuing(id))).status,
  (await read(id, key)).status,
  (await read(id, key, "/input_items")).status,
];

describe("access to stored responses", () => {
  it("fails for other organizations, other members, limited keys and sessions", async () => {
    const own = await openStoringAccount();
    const stranger = await openStoringAccount();
    const member = await addMember(own.orgId, "member");
    const second = await addKey(own.orgId, own.memberId);
    const limited = await createKey(own.key, { allowed_models: ["sandbox/*"] });
    const hours = { expires_in: 7200 };
    const [session, another] = [
      await createSession(own.key, hours),
      await createSession(own.key, hours),
    ];
    const [mine, theirs, bound, brief] = await Promise.all(
      [own.key, member.key, limited.key, session.token].map(
        async (key) => (await responseOf(await createResponse(key))).id,
      ),
    );
    const ids = { mine, theirs, bound, brief };
    const ALL = [200, 200, 200];
    const NONE = [400, 404, 404];
    const rows: readonly (readonly [string, keyof typeof ids, readonly number[]])[] = [
      // An owner can read all responses of the organization, and continue those of the owner's
      // keys.
      [own.key, "mine", ALL],
      [second.key, "mine", ALL],
      [second.key, "bound", ALL],
      [own.key, "theirs", [400, 200, 200]],
      [member.key, "theirs", ALL],
      [member.key, "mine", NONE],
      [limited.key, "bound", ALL],
      [limited.key, "mine", NONE],
      [session.token, "brief", ALL],
      [session.token, "mine", NONE],
      [session.token, "bound", NONE],
      [another.token, "brief", NONE],
    ];
    for (const [key, whose, statuses] of rows) {
      expect([whose, await may(key, ids[whose])]).toEqual([whose, statuses]);
    }
    setClock(Date.now() + HOUR_MS); // no request waits for missing responses anymore
    expect(await may(stranger.key, ids.mine)).toEqual(NONE);
    for (const key of [limited.key, session.token, member.key, stranger.key]) {
      await errorOf(await forget(ids.mine ?? "", key), 404);
    }
    expect((await read(ids.mine ?? "", own.key)).status).toBe(200);
  });
});

describe("the setting keep_responses_hours", () => {
  it("can be changed by owners and admins; other roles can only read it or send it back unchanged", async () => {
    const own = await openStoringAccount(12);
    const [adminMember, billingMember] = await Promise.all([
      addMember(own.orgId, "admin"),
      addMember(own.orgId, "billing"),
    ]);
    expect((await setStorageHours(own, 13, adminMember.key)).status).toBe(200);
    const error = await errorOf(await setStorageHours(own, 14, billingMember.key), 403);
    expect(error).toMatchObject({ code: "role_required" });
    const same = await setStorageHours(own, 13, billingMember.key);
    expect(await same.json()).toMatchObject({ keep_responses_hours: 13 });
    const { events } = await (
      await send("/v1/events?type=settings.changed", { key: own.key })
    ).json<{ events: { data: object }[] }>();
    expect(events[0]?.data).toEqual({ changes: { keepResponsesHours: { from: 12, to: 13 } } });
  });

  it("deletes all responses and pending writes when set to 0, and restores nothing when raised again", async () => {
    const own = await openStoringAccount();
    const { id } = await responseOf(await createResponse(own.key));
    const slow = slowBindings();
    const pending = await responseOf(await createResponse(own.key, {}, slow.bindings));
    await setStorageHours(own, 0);
    await errorOf(await read(id, own.key), 404);
    await wake(own);
    await setStorageHours(own, 24);
    await vi.waitFor(() => expect(slow.kept()).toBe(1));
    setClock(Date.now() + HOUR_MS);
    await errorOf(await read(id, own.key), 404);
    await errorOf(await read(pending.id, own.key), 404);
    expect((await storedRows(own))["parts"]).toEqual([]);
  });

  it("deletes older responses when lowered, and affects only later responses when raised", async () => {
    const own = await openStoringAccount(2);
    const { id } = await responseOf(await createResponse(own.key));
    await setStorageHours(own, 720);
    setClock(Date.now() + 2 * HOUR_MS);
    await errorOf(await read(id, own.key), 404);
    const later = await responseOf(await createResponse(own.key));
    expect((await read(later.id, own.key)).status).toBe(200); // waits until the response is stored
    setClock(Date.now() + 4 * HOUR_MS);
    expect((await read(later.id, own.key)).status).toBe(200);
    await setStorageHours(own, 1);
    await errorOf(await read(later.id, own.key), 404);
  });
});
