import type { HostTag } from "../catalog/entry.ts";
import type { Config, ConfigProblem } from "../../shared/config/config.ts";
import type { Provider } from "./provider.ts";

/** What the providers need of the configuration. */
export type ProviderConfig = Pick<Config, "region" | "sandbox" | "providers" | "secret" | "ai">;

export type { HostTag };

/** A provider that this Worker knows by itself: live where its variables are set. */
export type BuiltInProvider = {
  readonly id: string;
  /** The secrets or bindings that make it live, for messages and docs. */
  readonly variables: readonly string[];
  /** Whether they are set. */
  isSet(config: ProviderConfig): boolean;
  /** The promise of the host that it calls from this region; empty where there is none to call. */
  tags(config: ProviderConfig): readonly HostTag[];
  /** What in its variables cannot work, although they are set. */
  problems(config: ProviderConfig): readonly ConfigProblem[];
  /** Only called where it is set, has tags and has no problems. */
  build(config: ProviderConfig): Provider;
};

/** Whether an operator's base URL may be called: a web address that carries no credentials. */
export function isWebAddress(address: string): boolean {
  const url = URL.parse(address);
  if (url === null || url.username !== "" || url.password !== "") return false;
  return url.protocol === "https:" || url.protocol === "http:";
}

/**
 * The problem of a `..._BASE_URL` that is set and no web address. `own` is the address that keeps the
 * promise of this region, where one is made: the other hosts of its domain promise another, or none.
 */
export function baseUrlProblems(
  config: ProviderConfig,
  variable: string,
  own?: string,
): ConfigProblem[] {
  const address = config.secret(variable);
  if (address === undefined) return [];
  if (!isWebAddress(address)) return [{ variable, problem: "must be an http or https address" }];
  const [host, ownHost] = [hostOf(address), hostOf(own ?? address)];
  if (host === ownHost || domainOf(host) !== domainOf(ownHost)) return [];
  return [otherPlaceProblem(variable, ownHost)];
}

/** The problem of an address whose host is known to run elsewhere; `own` is the one that does not. */
export function otherPlaceProblem(variable: string, own: string): ConfigProblem {
  return { variable, problem: `its host does not keep prompts in this region; ${own} does` };
}

/** The host of a web address, without the dot that names may end in. */
export function hostOf(address: string): string {
  return (URL.parse(address)?.hostname ?? "").replace(/\.$/, "");
}

function domainOf(host: string): string {
  return host.split(".").slice(-2).join(".");
}
