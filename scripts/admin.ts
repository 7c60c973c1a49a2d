// npm run admin: an operator's hand on a region, over /admin/v1.
// Ends with 0; 1 when the region or the network refused; 2 when it was called wrongly.
import { run } from "./admin/command-line.ts";

process.stdout.on("error", () => process.exit(0)); // what read the output has read enough
process.exitCode = (await run(process.argv.slice(2))) ?? process.exitCode ?? 0;
