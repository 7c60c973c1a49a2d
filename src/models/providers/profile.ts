import {
  DEEPSEEK_PROFILE,
  JINA_PROFILE,
  MISTRAL_PROFILE,
  VOYAGE_PROFILE,
  XAI_PROFILE,
} from "./profiles/authors.ts";
import {
  GENERIC_PROFILE,
  LLAMA_CPP_PROFILE,
  LOCAL_PROFILE,
  OLLAMA_PROFILE,
  OPENAI_HOST_PROFILE,
} from "./profiles/openai.ts";
import {
  CEREBRAS_PROFILE,
  FIREWORKS_PROFILE,
  GROQ_PROFILE,
  OPENROUTER_PROFILE,
  TOGETHER_PROFILE,
} from "./profiles/resellers.ts";
import type { Profile } from "../protocols/chat/profile.ts";

export const PROFILE_BY_ID = {
  openai: OPENAI_HOST_PROFILE,
  azure: { ...OPENAI_HOST_PROFILE, keyHeader: "api-key", speaksResponses: false, chatExtras: {} },
  mistral: MISTRAL_PROFILE,
  groq: GROQ_PROFILE,
  deepseek: DEEPSEEK_PROFILE,
  together: TOGETHER_PROFILE,
  fireworks: FIREWORKS_PROFILE,
  xai: XAI_PROFILE,
  cerebras: CEREBRAS_PROFILE,
  openrouter: OPENROUTER_PROFILE,
  voyage: VOYAGE_PROFILE,
  jina: JINA_PROFILE,
  ollama: OLLAMA_PROFILE,
  vllm: LOCAL_PROFILE,
  llamacpp: LLAMA_CPP_PROFILE,
  generic: GENERIC_PROFILE,
} as const satisfies Readonly<Record<string, Profile>>;

export const PROFILES: ReadonlyMap<string, Profile> = new Map(Object.entries(PROFILE_BY_ID));
