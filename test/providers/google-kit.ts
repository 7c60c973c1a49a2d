import { parseConfig } from "../../src/shared/config/config.ts";
import type { ProviderConfig } from "../../src/models/core/built-in.ts";
import { GOOGLE_PROVIDERS } from "../../src/models/providers/google.ts";
import type { JsonObject, Provider } from "../../src/models/core/provider.ts";
import { GOOGLE_CHAT } from "../fixtures/google-replies.ts";
import { CANARY } from "../fixtures/reply-scenarios.ts";
import { answerTo } from "./adapter-kit.ts";

const BASE = {
  KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
  ADMIN_TOKEN: "token-of-admin-".padEnd(32, "0123"),
  REGION: "eu",
};

/** Returns the configuration of a deployment with these variables, by default in the EU. */
export function configOf(vars: Record<string, string>): ProviderConfig {
  const parsed = parseConfig({ ...BASE, ...vars });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.config;
}

/** Returns one of Google's two built-in providers. */
export function builtIn(id: "google" | "vertex") {
  const found = GOOGLE_PROVIDERS.find((one) => one.id === id);
  if (found === undefined) throw new Error(id);
  return found;
}

export const GEMINI: Provider = builtIn("google").build(configOf({ GEMINI_API_KEY: CANARY.key }));
export const MODEL = "gemini-3.5-flash";

/** Returns the Gemini API's request for a chat body. */
export async function sent(
  body: JsonObject,
  { model = MODEL, cap = 256 }: { readonly model?: string; readonly cap?: number } = {},
): Promise<JsonObject> {
  const call = { upstreamId: model, body, cap };
  const { answer, requests } = await answerTo(GEMINI, call, GOOGLE_CHAT.text.json);
  if (requests[0] === undefined) throw new Error(JSON.stringify(answer));
  return requests[0].json;
}

/** Returns the failure of a chat body that must not reach the network. */
export async function unsentFailure(body: JsonObject): Promise<JsonObject> {
  const { answer, requests } = await answerTo(
    GEMINI,
    { upstreamId: MODEL, body },
    GOOGLE_CHAT.text.json,
  );
  if (answer.kind !== "failure" || requests.length > 0) throw new Error(JSON.stringify(answer));
  return answer.failure;
}
