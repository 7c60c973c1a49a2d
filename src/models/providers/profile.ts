import { DEEPSEEK, JINA, MISTRAL, VOYAGE, XAI } from "./profiles/authors.ts";
import { GENERIC, LLAMA_CPP, LOCAL, OLLAMA, OPENAI } from "./profiles/openai.ts";
import { CEREBRAS, FIREWORKS, GROQ, OPENROUTER, TOGETHER } from "./profiles/resellers.ts";
import type { Profile } from "../protocols/chat/profile.ts";

export const PROFILE_OF = {
  openai: OPENAI,
  azure: { ...OPENAI, keyHeader: "api-key", speaksResponses: false, chatExtras: {} },
  mistral: MISTRAL,
  groq: GROQ,
  deepseek: DEEPSEEK,
  together: TOGETHER,
  fireworks: FIREWORKS,
  xai: XAI,
  cerebras: CEREBRAS,
  openrouter: OPENROUTER,
  voyage: VOYAGE,
  jina: JINA,
  ollama: OLLAMA,
  vllm: LOCAL,
  llamacpp: LLAMA_CPP,
  generic: GENERIC,
} as const satisfies Readonly<Record<string, Profile>>;

export const PROFILES: ReadonlyMap<string, Profile> = new Map(Object.entries(PROFILE_OF));

export const OPENAI_PROFILE: Profile = OPENAI;
