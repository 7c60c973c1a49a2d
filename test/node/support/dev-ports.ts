import { portVariable } from "../../../scripts/dev-settings.ts";
import { freePort } from "../../../scripts/ports.ts";
import { REGION_NAMES } from "../../../scripts/region-names.ts";
import type { RegionName } from "../../../scripts/region-names.ts";

/** Returns a free port for each region of `npm start`, and the variables with them. */
export async function devPorts(): Promise<{
  readonly ports: Readonly<Record<RegionName, number>>;
  readonly variables: Readonly<Record<string, string>>;
}> {
  const taken = await Promise.all(
    REGION_NAMES.map(async (name) => [name, await freePort()] as const),
  );
  return {
    ports: Object.fromEntries(taken) as Record<RegionName, number>,
    variables: Object.fromEntries(taken.map(([name, port]) => [portVariable(name), String(port)])),
  };
}
