import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "../../scripts/dev-settings.ts";

/** A package in package-lock.json. */
type Locked = {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
  readonly hasInstallScript?: boolean;
};
type Manifest = {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly overrides: Readonly<Record<string, string>>;
  readonly allowScripts: Readonly<Record<string, boolean>>;
};

const read = (file: string): unknown => JSON.parse(readFileSync(path.join(ROOT, file), "utf8"));
const manifest = read("package.json") as Manifest;
const { packages } = read("package-lock.json") as {
  readonly packages: Readonly<Record<string, Locked>>;
};
const nameOf = (place: string): string => place.slice(place.lastIndexOf("node_modules/") + 13);
const installed = Object.entries(packages).filter(([place]) => place !== "");

describe("the list of the repository's dependencies", () => {
  it("adds only three packages to the Worker: hono, oauth4webapi and zod", () => {
    const served = installed.filter(([, one]) => one.dev !== true).map(([place]) => nameOf(place));
    expect(served.toSorted()).toEqual(["hono", "oauth4webapi", "zod"]);
    expect(Object.keys(manifest.dependencies).toSorted()).toEqual(served.toSorted());
  });

  it("contains exact version numbers that equal the installed versions", () => {
    const declared = {
      ...manifest.dependencies,
      ...manifest.devDependencies,
      ...manifest.overrides,
    };
    for (const [name, version] of Object.entries(declared)) {
      expect(version).toMatch(/^\d+\.\d+\.\d+(?:-beta)?$/);
      expect([name, packages[`node_modules/${name}`]?.version]).toEqual([name, version]);
    }
  });

  it("contains only three packages that run install scripts", () => {
    const scripted = installed.filter(([, one]) => one.hasInstallScript === true);
    const names = scripted.map(([place]) => nameOf(place)).toSorted();
    expect(names).toEqual(["esbuild", "node", "workerd"]);
    expect(manifest.allowScripts).toEqual({ esbuild: true, node: true, workerd: true });
  });

  it.each(["", "test/clients/", "test/browser/"])(
    "contains only allowed install scripts in the folder '%s', where each install command ignores scripts",
    (folder) => {
      const own = read(`${folder}package.json`) as Partial<Manifest>;
      const locked = read(`${folder}package-lock.json`) as { packages: Record<string, Locked> };
      const scripted = Object.entries(locked.packages).filter(([, one]) => one.hasInstallScript);
      const allowed = Object.keys(own.allowScripts ?? {}).toSorted();
      expect(scripted.map(([place]) => nameOf(place)).toSorted()).toEqual(allowed);
      const { scripts } = read("package.json") as { scripts: Record<string, string> };
      const how = [...Object.values(scripts), readFileSync(path.join(ROOT, ".ci/run"), "utf8")];
      const installing = /(?:^|&& )npm (?:--prefix \S+ )?(?:ci|install|i)\b[^&\n]*/gm;
      const installs = how.flatMap((text) => text.match(installing) ?? []);
      expect(installs.length).toBeGreaterThanOrEqual(3);
      for (const command of installs) expect(command).toContain("--ignore-scripts");
    },
  );

  it("contains SHA-512 checksums, except for binaries of platforms other than Linux x64 with glibc", () => {
    const unhashed = installed.filter(([, one]) => one.integrity?.startsWith("sha512-") !== true);
    for (const [place, { optional, dev, os = [], cpu = [], libc = [] }] of unhashed) {
      const isHere =
        os.includes("linux") &&
        cpu.includes("x64") &&
        (libc.length === 0 || libc.includes("glibc"));
      expect([place, optional, dev, isHere && !place.endsWith("-musl")]).toEqual([
        place,
        true,
        true,
        false,
      ]);
    }
    expect(installed.filter(([, one]) => one.resolved !== undefined || one.link === true)).toEqual(
      [],
    );
  });
});
