import { beforeAll, expect } from "vitest";
import { MultipartForm } from "../../src/models/core/outgoing-body.ts";
import type { FormField } from "../../src/shared/http/form.ts";
import { balanceOf, bindingsWith, openAccount, send } from "./client.ts";
import type { Sending } from "./client.ts";
import { mockUpstream } from "./upstream.ts";
import type { UpstreamCall } from "./upstream.ts";

/** The key of the file's account, which has credits. */
export let key: string;

/** Opens an account before the tests of a file. */
export function usePayer(): void {
  beforeAll(async () => {
    ({ key } = await openAccount());
  });
}

/** Returns the content type and bytes of a form. */
export async function formOf(fields: readonly FormField[]) {
  const form = new MultipartForm([...fields]);
  const body = new Uint8Array(await new Response(form.stream()).arrayBuffer());
  return { headers: { "content-type": form.type }, body };
}

/** A body's changes of the endpoint's default body, and how it is sent. */
export type Sent = Omit<Sending, "method" | "key" | "body"> & { readonly body?: object };

/** Returns a function that sends requests to one endpoint with the payer's key. */
export function sender(path: string, defaults: object): (sent?: Sent) => Promise<Response> {
  return ({ body, ...more } = {}) => send(path, { key, body: { ...defaults, ...body }, ...more });
}

type Receipt = {
  readonly cost_micro: number;
  readonly held_micro: number;
  readonly estimated: boolean;
  readonly lines: readonly { readonly what: string; readonly tokens: number }[];
};

/** Returns a successful response's text, headers and receipt, whose cost the balance confirms. */
export async function charged(sent: () => Promise<Response>) {
  const before = await balanceOf(key);
  const { status, headers, ...response } = await textOf(sent);
  expect([status, response.text]).toEqual([200, expect.any(String)]);
  const id = headers.get("x-request-id") ?? "";
  const receipt = await (await send(`/v1/generations/${id}`, { key })).json<Receipt>();
  expect(before - (await balanceOf(key))).toBe(receipt.cost_micro);
  return { ...response, headers, receipt };
}

async function textOf(sent: () => Promise<Response>) {
  const response = await sent();
  return { status: response.status, headers: response.headers, text: await response.text() };
}

export async function statusAndCost(sent: () => Promise<Response>): Promise<[number, number]> {
  const before = await balanceOf(key);
  const { status } = await textOf(sent);
  return [status, before - (await balanceOf(key))];
}

type Providers = { readonly calls: readonly UpstreamCall[]; readonly bindings: Env };

/** Replaces all providers by this response, and sets their secrets or other variables. */
export function answering(
  variables: object,
  answer: object | (() => Response | Promise<Response>),
): Providers {
  const respond =
    typeof answer === "function" ? (answer as () => Response) : () => Response.json(answer);
  const { calls } = mockUpstream(respond);
  return { calls, bindings: bindingsWith({ RESIDENCY: "relaxed", ...variables }) };
}

/** Returns the JSON of each event in a stream. */
export function eventsIn(text: string): unknown[] {
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? "") as unknown);
}

/** Returns a provider's stream with these events. */
export function streaming(...events: object[]): Response {
  const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  return new Response(text, { headers: { "content-type": "text/event-stream" } });
}
