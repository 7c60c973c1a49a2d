import { createBedrockProvider } from "../../src/models/providers/bedrock.ts";
import type { JsonObject, ProviderFailure } from "../../src/models/core/provider.ts";
import { BEDROCK_CHAT } from "../fixtures/bedrock-replies.ts";
import { CANARY } from "../fixtures/reply-scenarios.ts";
import { answerTo } from "./adapter-kit.ts";

export const CLAUDE = "eu.anthropic.claude-sonnet-5";
export const HAIKU = "eu.anthropic.claude-haiku-4-5-20251001-v1:0";
export const NOVA = "amazon.nova-pro-v1:0";

const HOST = {
  tag: "eu",
  awsRegion: "eu-central-1",
  baseUrl: "https://bedrock-runtime.eu-central-1.amazonaws.com",
} as const;

/** With an API key. */
export const BEDROCK = createBedrockProvider({
  ...HOST,
  credentials: { kind: "bearer", token: CANARY.key },
});

export const ACCESS_KEY = {
  kind: "signature",
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
} as const;

/** Signs with an access key, which is temporary if there is a session token. */
export const signing = (sessionToken?: string) =>
  createBedrockProvider({
    ...HOST,
    credentials: { ...ACCESS_KEY, ...(sessionToken && { sessionToken }) },
  });

/** Returns the sent body of a chat request, by default to Nova. */
export async function sent(body: JsonObject, upstreamId = NOVA, cap = 256): Promise<JsonObject> {
  const { requests } = await answerTo(BEDROCK, { upstreamId, body, cap }, BEDROCK_CHAT.text.json);
  if (requests[0] === undefined) throw new Error("nothing was sent");
  return requests[0].json;
}

/** Returns the failure of a chat request that isn't sent. */
export async function unsentFailure(body: JsonObject, upstreamId = NOVA): Promise<ProviderFailure> {
  const { answer, requests } = await answerTo(
    BEDROCK,
    { upstreamId, body },
    BEDROCK_CHAT.text.json,
  );
  if (answer.kind !== "failure" || requests.length > 0) throw new Error("it was sent");
  return answer.failure;
}
