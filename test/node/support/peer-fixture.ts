import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import type { Account } from "./account.ts";
import { openRemoteAccount } from "./peer-keys.ts";
import { startFaultyRegions } from "./two-regions.ts";
import type { FaultyRegions } from "./two-regions.ts";

/**
 * Two regions for all tests of a file, with a new EU organization with a global key for each test.
 */
class PeerFixture {
  #regions: FaultyRegions | undefined;
  #owner: Account | undefined;

  get regions(): FaultyRegions {
    if (this.#regions === undefined) throw new Error("the regions start before the first test");
    return this.#regions;
  }

  get owner(): Account {
    if (this.#owner === undefined) throw new Error("each test has an owner of its own");
    return this.#owner;
  }

  async start(): Promise<void> {
    this.#regions = await startFaultyRegions();
  }

  async open(): Promise<void> {
    this.#owner = await openRemoteAccount(this.regions);
  }

  /** Stops all messages between the regions until `heal`. */
  readonly cut = (): Promise<void> => this.#link("refuse");
  readonly heal = (): Promise<void> => this.#link("pass");

  async #link(mode: "pass" | "refuse"): Promise<void> {
    await Promise.all([this.regions.toEu.set(mode), this.regions.toUs.set(mode)]);
  }
}

/**
 * Returns regions that start before a file's tests, recover after each test and stop at the end.
 */
export function peerFixture(): PeerFixture {
  const fixture = new PeerFixture();
  beforeAll(() => fixture.start());
  afterAll(() => fixture.regions.stop());
  beforeEach(() => fixture.open());
  afterEach(() => fixture.heal());
  return fixture;
}
