import { configOf } from "../config.ts";
import type { Region } from "../lib/caller.ts";
import { now } from "../lib/clock.ts";
import { homeBook } from "./home-book.ts";
import type { KeyBook } from "./key-book.ts";
import { findKeyByHash, touchKey } from "./keys.store.ts";

/** Where the keys of this home are booked: null, or this region's own name, is here. */
export function bookOf(env: Env, home: Region | null): KeyBook {
  const parsed = configOf(env);
  if (home === null || (parsed.ok && parsed.config.region === home)) {
    return {
      isOurs: true,
      find: (keyHash) => findKeyByHash(env.DB, keyHash),
      touch: (keyHash, usedAt) => touchKey(env.DB, keyHash, usedAt),
    };
  }
  const peers = parsed.ok ? parsed.config.peers : [];
  return homeBook(
    peers.find((peer) => peer.region === home),
    () => now(env),
  );
}
