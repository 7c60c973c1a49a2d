import { elapsedMs } from "../../shared/clock.ts";
import { FILE_READ_BYTES } from "./buffered-body.ts";

/** Ms to read FILE_READ_BYTES. All files of an isolate together are read at 64 MB/s. */
const READ_MS = 1;
const READ_MS_MIN = 0.25;
const WAIT_MS_MAX = 1000;

/** Limits how fast an isolate reads files, because large files would delay other requests. */
export class FileReadPacer {
  #freeAtMs = 0;

  /** Waits until more of a file can be read. `bytes` is the size of the file's previous read. */
  waitAfter(bytes: number): Promise<void> {
    const nowMs = elapsedMs();
    const hasMovedBack = this.#freeAtMs - nowMs > WAIT_MS_MAX; // the clock went back
    const startMs = hasMovedBack ? nowMs : Math.max(nowMs, this.#freeAtMs);
    this.#freeAtMs = startMs + Math.max(READ_MS_MIN, (READ_MS * bytes) / FILE_READ_BYTES);
    const waitMs = startMs - nowMs;
    if (waitMs < 1) return Promise.resolve();
    return new Promise((resolve) => {
      setTimeout(resolve, waitMs);
    });
  }
}
