import { chatDoor } from "./chat.ts";
import { completionsDoor } from "./completions.ts";
import type { Door } from "../core/door.ts";
import { embeddingsDoor } from "./embeddings.ts";
import { messagesDoor } from "./messages.ts";
import { responsesDoor } from "./responses.ts";

/** Every way in that costs money. A door is a file or a folder here and a row of this table. */
export const DOORS: readonly Door[] = [
  chatDoor,
  completionsDoor,
  responsesDoor,
  embeddingsDoor,
  messagesDoor,
];
