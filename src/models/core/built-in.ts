import type { DataLocation } from "../catalog/entry.ts";
import type { Config, ConfigProblem } from "../../shared/config/config.ts";
import type { Provider } from "./provider.ts";

export type ProviderConfig = Pick<Config, "region" | "sandbox" | "providers" | "secret" | "ai">;

export type { DataLocation };

/** A provider that is active if its variables are set. */
export type BuiltInProvider = {
  readonly id: string;
  readonly variables: readonly string[];
  isSet(config: ProviderConfig): boolean;
  tags(config: ProviderConfig): readonly DataLocation[];
  problems(config: ProviderConfig): readonly ConfigProblem[];
  /** Must be called only if `isSet` returns true and the variables have no problems. */
  build(config: ProviderConfig): Provider;
};

export function isWebAddress(address: string): boolean {
  const url = URL.parse(address);
  if (url === null || url.username !== "" || url.password !== "") return false;
  return url.protocol === "https:" || url.protocol === "http:";
}

/**
 * Returns the problems of a base URL. `own` is the required URL if only one host keeps data in this
 * region.
 */
export function findBaseUrlProblems(
  config: ProviderConfig,
  variable: string,
  own?: string,
): ConfigProblem[] {
  const address = config.secret(variable);
  if (address === undefined) return [];
  if (!isWebAddress(address)) return [{ variable, problem: "must be an http or https address" }];
  const [host, ownHost] = [parseHostname(address), parseHostname(own ?? address)];
  if (host === ownHost || domainOf(host) !== domainOf(ownHost)) return [];
  return [createHostRegionProblem(variable, ownHost)];
}

/** Returns the configuration problem of a host that keeps no data in this region, unlike `own`. */
export function createHostRegionProblem(variable: string, own: string): ConfigProblem {
  return {
    variable,
    problem: `its provider does not keep prompts in this region, but ${own} does`,
  };
}

export function parseHostname(address: string): string {
  return (URL.parse(address)?.hostname ?? "").replace(/\.$/, "");
}

function domainOf(host: string): string {
  return host.split(".").slice(-2).join(".");
}
