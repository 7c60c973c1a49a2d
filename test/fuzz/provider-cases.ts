import { createAnthropicProvider } from "../../src/models/providers/anthropic.ts";
import { createCohereProvider } from "../../src/models/providers/cohere.ts";
import { createOpenAiCompatibleProvider } from "../../src/models/providers/openai-compatible.ts";
import { PROVIDER_HOST_PROFILES } from "../../src/models/providers/profiles.ts";
import type { Provider } from "../../src/models/core/provider.ts";
import { createWorkersAiProvider } from "../../src/models/providers/workers-ai.ts";
import { ANTHROPIC_CHAT, ANTHROPIC_FAILURES } from "../fixtures/anthropic-replies.ts";
import { BEDROCK_CHAT, BEDROCK_FAILURES } from "../fixtures/bedrock-replies.ts";
import { COHERE_CHAT, COHERE_FAILURES } from "../fixtures/cohere-replies.ts";
import { GOOGLE_CHAT, GOOGLE_FAILURES } from "../fixtures/google-replies.ts";
import { HOST_FAILURES } from "../fixtures/hosts-failures.ts";
import { HOST_REPLIES } from "../fixtures/hosts-replies.ts";
import type { HostReplies } from "../fixtures/hosts-replies.ts";
import { CANARY } from "../fixtures/reply-scenarios.ts";
import type { ChatScenarios, FailureReplies, RawReply } from "../fixtures/reply-scenarios.ts";
import {
  WORKERS_AI_CHAT,
  WORKERS_AI_FAILURES,
  WORKERS_AI_OPENAI_CHAT,
} from "../fixtures/workers-ai-replies.ts";
import { BEDROCK, NOVA } from "../providers/bedrock-kit.ts";
import { GEMINI, MODEL } from "../providers/google-kit.ts";
import { BINDING } from "../providers/workers-ai-binding.ts";

/** A response in a provider's own format. */
type Case = {
  readonly provider: Provider;
  readonly stream: boolean;
  readonly reply: RawReply;
  readonly upstreamId: string;
};

function casesOf(
  provider: Provider,
  chat: ChatScenarios,
  failures: FailureReplies,
  upstreamId = "upstream-model",
): Case[] {
  const { errors, errorFirst, errorMid, cut } = failures;
  const json = [...Object.values(chat).map((one) => one.json), ...Object.values(errors)];
  const streams = [...Object.values(chat).map((one) => one.stream), errorFirst, errorMid, cut];
  return [
    ...json.map((reply) => ({ provider, stream: false, reply, upstreamId })),
    ...streams.map((reply) => ({ provider, stream: true, reply, upstreamId })),
  ];
}

const SECRET = CANARY.key;

/** Returns responses of OpenAI-compatible providers, each in its own variant. */
function hostCases({ dialect, chat, errorFirst, errorMid, cut, provoked }: HostReplies): Case[] {
  const profile = PROVIDER_HOST_PROFILES.get(dialect.profile);
  if (profile === undefined) throw new Error(dialect.profile);
  const baseUrl = `https://${CANARY.host}/v1`;
  const provider = createOpenAiCompatibleProvider({
    id: dialect.profile,
    baseUrl,
    profile,
    secret: SECRET,
  });
  const errors = Object.fromEntries(
    HOST_FAILURES.filter((one) => one.profile === dialect.profile).map((one, index) => [
      index,
      { status: one.status, headers: { ...one.headers, ...JSON_TYPE }, body: one.body },
    ]),
  );
  return casesOf(provider, chat, { errors, errorFirst, errorMid, cut, provoked });
}
const JSON_TYPE = { "content-type": "application/json" };

export const CASES: readonly Case[] = [
  ...HOST_REPLIES.flatMap(hostCases),
  ...casesOf(
    createAnthropicProvider({ baseUrl: `https://${CANARY.host}/v1`, secret: SECRET, geo: null }),
    ANTHROPIC_CHAT,
    ANTHROPIC_FAILURES,
  ),
  ...casesOf(GEMINI, GOOGLE_CHAT, GOOGLE_FAILURES, MODEL),
  ...casesOf(BEDROCK, BEDROCK_CHAT, BEDROCK_FAILURES, NOVA),
  ...casesOf(
    createCohereProvider(`https://${CANARY.host}/v2`, SECRET),
    COHERE_CHAT,
    COHERE_FAILURES,
  ),
  ...casesOf(createWorkersAiProvider(BINDING), WORKERS_AI_CHAT, WORKERS_AI_FAILURES),
  ...casesOf(createWorkersAiProvider(BINDING), WORKERS_AI_OPENAI_CHAT, WORKERS_AI_FAILURES),
];
