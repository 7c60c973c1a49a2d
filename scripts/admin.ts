// npm run admin: operates a region through /admin/v1. Exits with 0 on success, 1 if the region or
// the network fails, or 2 for wrong usage.
import { run } from "./admin/command-line.ts";

process.stdout.on("error", () => process.exit(0)); // the reader closed the pipe
process.exitCode = (await run(process.argv.slice(2))) ?? process.exitCode ?? 0;
