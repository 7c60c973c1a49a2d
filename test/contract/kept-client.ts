import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { expect } from "vitest";
import type { KeptResponses } from "../../src/models/stored-responses/stored-responses.do.ts";
import { bindingsWith, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

/** PATCH of `keep_responses_hours`, as the organization's owner unless told otherwise. */
export const keepFor = (own: Account, hours: unknown, key = own.key): Promise<Response> =>
  send(`/v1/orgs/${own.orgId}/settings`, {
    method: "PATCH",
    key,
    body: { keep_responses_hours: hours },
  });

/** An organization that keeps its answers. */
export async function keeping(hours = 24): Promise<Account> {
  const own = await openAccount();
  expect((await keepFor(own, hours)).status).toBe(200);
  return own;
}

/** POST /v1/responses: `sandbox/echo` is asked "Hello there" unless the fields say otherwise. */
export const say = (key: string, fields: object = {}, bindings?: Env): Promise<Response> =>
  send("/v1/responses", {
    key,
    body: { model: "sandbox/echo", input: "Hello there", ...fields },
    ...(bindings !== undefined && { bindings: Object.assign(bindings, clock()) }),
  });

/** What `setClock` says, for bindings that were copied before: the same ones, which are one isolate. */
const clock = (): object => ({
  CLOCK_OFFSET_MS: (env as { readonly CLOCK_OFFSET_MS?: string }).CLOCK_OFFSET_MS,
});

export const keptOf = ({ orgId }: Pick<Account, "orgId">) => env.KEPT_RESPONSES.getByName(orgId);

/** Every row of every table of an organization's object, binary as Latin-1 text. */
export async function keptRows(own: Account): Promise<Readonly<Record<string, object[]>>> {
  return runInDurableObject(keptOf(own), (_: KeptResponses, { storage }) => {
    const { sql } = storage;
    const tables = sql
      .exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'")
      .toArray()
      .map(({ name }) => name)
      .filter((name) => !name.startsWith("_cf"));
    return Object.fromEntries(
      tables.map((name) => [name, sql.exec(`SELECT * FROM ${name}`).toArray().map(readable)]),
    );
  });
}

function readable(row: Record<string, SqlStorageValue>): object {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      value instanceof ArrayBuffer
        ? Array.from(new Uint8Array(value), (byte) => String.fromCodePoint(byte)).join("")
        : value,
    ]),
  );
}

/** The tests' objects, which keep an answer `ms` late; `kept` counts those that they have kept. */
export function slowBindings(ms = 300): { readonly bindings: Env; readonly kept: () => number } {
  let kept = 0;
  const KEPT_RESPONSES = {
    getByName: (name: string) => ({
      recall: (...asked: Parameters<KeptResponses["recall"]>) =>
        env.KEPT_RESPONSES.getByName(name).recall(...asked),
      keep: async (...asked: Parameters<KeptResponses["keep"]>) => {
        await scheduler.wait(ms);
        const done = await env.KEPT_RESPONSES.getByName(name).keep(...asked);
        kept++;
        return done;
      },
    }),
  };
  return { bindings: bindingsWith({ KEPT_RESPONSES }), kept: () => kept };
}

/** What follows an answer. */
export const after = (previous: string, more: object = {}): object => ({
  previous_response_id: previous,
  input: "And now?",
  ...more,
});
export const read = (id: string, key: string, more = ""): Promise<Response> =>
  send(`/v1/responses/${id}${more}`, { key });
