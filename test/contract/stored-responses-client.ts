import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { expect } from "vitest";
import type { KeptResponses } from "../../src/models/stored-responses/stored-responses.do.ts";
import { bindingsWith, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

/** Sets `keep_responses_hours`, by default as the organization's owner. */
export const setStorageHours = (own: Account, hours: unknown, key = own.key): Promise<Response> =>
  send(`/v1/orgs/${own.orgId}/settings`, {
    method: "PATCH",
    key,
    body: { keep_responses_hours: hours },
  });

/** Creates an organization that stores responses. */
export async function openStoringAccount(hours = 24): Promise<Account> {
  const own = await openAccount();
  expect((await setStorageHours(own, hours)).status).toBe(200);
  return own;
}

/** Sends "Hello there" to `sandbox/echo` by POST /v1/responses, unless the fields differ. */
export const createResponse = (
  key: string,
  fields: object = {},
  bindings?: Env,
): Promise<Response> =>
  send("/v1/responses", {
    key,
    body: { model: "sandbox/echo", input: "Hello there", ...fields },
    ...(bindings !== undefined && { bindings: Object.assign(bindings, clock()) }),
  });

/** Sets the clock of bindings that were already copied, so that they stay those of one isolate. */
const clock = (): object => ({
  CLOCK_OFFSET_MS: (env as { readonly CLOCK_OFFSET_MS?: string }).CLOCK_OFFSET_MS,
});

export const responsesObjectOf = ({ orgId }: Pick<Account, "orgId">) =>
  env.KEPT_RESPONSES.getByName(orgId);

/**
 * Returns every row of every table of an organization's object, with binary data as Latin-1 text.
 */
export async function storedRows(own: Account): Promise<Readonly<Record<string, object[]>>> {
  return runInDurableObject(responsesObjectOf(own), (_: KeptResponses, { storage }) => {
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

/** Returns bindings whose object stores responses 100 ms late. `kept` counts the stored ones. */
export function slowBindings(): { readonly bindings: Env; readonly kept: () => number } {
  let kept = 0;
  const KEPT_RESPONSES = {
    getByName: (name: string) => ({
      recall: (...args: Parameters<KeptResponses["recall"]>) =>
        env.KEPT_RESPONSES.getByName(name).recall(...args),
      keep: async (...args: Parameters<KeptResponses["keep"]>) => {
        await scheduler.wait(100);
        const done = await env.KEPT_RESPONSES.getByName(name).keep(...args);
        kept++;
        return done;
      },
    }),
  };
  return { bindings: bindingsWith({ KEPT_RESPONSES }), kept: () => kept };
}

/** Returns the fields that continue a response. */
export const continuing = (previous: string, more: object = {}): object => ({
  previous_response_id: previous,
  input: "And now?",
  ...more,
});
export const read = (id: string, key: string, more = ""): Promise<Response> =>
  send(`/v1/responses/${id}${more}`, { key });
