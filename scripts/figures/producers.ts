import { FROM_PROGRAMS } from "./from-programs.ts";
import { FROM_TESTS } from "./from-tests.ts";
import { INVALID_KEYS } from "./invalid-keys.ts";
import { CLIENTS_THAT_LEAVE } from "./leaving.ts";
import { EVICTION_ATTACK, LIMIT_OF_A_MINUTE } from "./register-load.ts";
import { MIXED_LOAD } from "./mixed-load.ts";
import { MODEL_AND_MUTANTS } from "./mutate.ts";
import { OUTAGE } from "./outage.ts";
import type { Producer } from "./producer.ts";
import { RACES_OF_LAST_CREDITS } from "./races.ts";

/** Everything that measures, in the order of the rows; every row has one. */
export const PRODUCERS: readonly Producer[] = [
  MODEL_AND_MUTANTS,
  RACES_OF_LAST_CREDITS,
  MIXED_LOAD,
  LIMIT_OF_A_MINUTE,
  EVICTION_ATTACK,
  CLIENTS_THAT_LEAVE,
  INVALID_KEYS,
  OUTAGE,
  ...FROM_TESTS,
  ...FROM_PROGRAMS,
].toSorted((a, b) => (a.rows[0] ?? 0) - (b.rows[0] ?? 0));
