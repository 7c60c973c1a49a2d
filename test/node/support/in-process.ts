import { vi } from "vitest";

/** The result of a program. */
export type Ran = { readonly code: number | null; readonly out: string; readonly err: string };

let before: Promise<unknown> = Promise.resolve();

/**
 * Runs a program's `main` in this process with these variables, for programs without input. Runs
 * are sequential, because they share stdout and stderr.
 */
export function runInProcess(
  main: () => Promise<number | null>,
  variables: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  const called = before.then(() => captured(main, variables));
  before = called.catch(() => {});
  return called;
}

async function captured(
  main: () => Promise<number | null>,
  variables: Readonly<Record<string, string>>,
): Promise<Ran> {
  const { env, exitCode } = process;
  const output = { out: "", err: "" };
  const spies = [
    vi.spyOn(process.stdout, "write").mockImplementation((part) => {
      output.out += String(part);
      return true;
    }),
    vi.spyOn(process.stderr, "write").mockImplementation((part) => {
      output.err += String(part);
      return true;
    }),
  ];
  const { TURNPIKE_URL: _url, TURNPIKE_ADMIN_TOKEN: _token, ...inherited } = env;
  process.env = { ...inherited, ...variables };
  process.exitCode = undefined;
  try {
    const code = (await main()) ?? endsWith();
    return { code, ...output };
  } finally {
    for (const spy of spies) spy.mockRestore();
    process.env = env;
    process.exitCode = exitCode;
  }
}

/** Returns the current exit code. */
function endsWith(): number {
  return Number(process.exitCode ?? 0);
}
