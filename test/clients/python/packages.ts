/** The packages for the programs in this folder. */
export const NEWEST = [
  "openai==3.54.0",
  "anthropic==2.12.0",
  "pydantic-ai-slim[openai,anthropic]==2.68.0",
  "langchain-openai==1.7.3",
  "langchain-anthropic==1.7.7",
  "agent-framework-core==1.23.0",
  "agent-framework-openai==1.17.0",
  "openrouter==1.3.84",
];
/** The previous major versions, in addition to the packages of the newest. */
export const OLDER = ["openai==2.54.0", "anthropic==1.17.0"];
/** The packages of media_sdks.py. */
export const MEDIA = ["openai==3.54.0", "cohere==7.3.1", "mistralai==3.7.0"];
