import { expect } from "vitest";
import { send } from "./client.ts";

type Minted = { readonly id: string; readonly token: string; readonly expires_at: string };

/** Creates a session of this key. Returns it unused. */
export async function createSession(
  key: string,
  fields: Record<string, unknown> = {},
): Promise<Minted> {
  const response = await send("/v1/sessions", { key, body: fields });
  expect(response.status).toBe(201);
  return response.json<Minted>();
}

/** Ends a session with DELETE /v1/sessions/{id}. */
export function endSession(key: string, id: string): Promise<Response> {
  return send(`/v1/sessions/${id}`, { key, method: "DELETE" });
}
