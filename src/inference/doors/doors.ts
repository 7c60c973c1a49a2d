import { chatDoor } from "./chat.ts";
import { completionsDoor } from "./completions.ts";
import type { Door } from "./door.ts";
import { embeddingsDoor } from "./embeddings.ts";
import { messagesDoor } from "./messages/messages.ts";
import { responsesDoor } from "./responses/responses.ts";

/** Every way in that costs money. A door is a file or a folder here and a row of this table. */
export const DOORS: readonly Door[] = [
  chatDoor,
  completionsDoor,
  responsesDoor,
  embeddingsDoor,
  messagesDoor,
];
