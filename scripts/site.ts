// Builds static pages into site/: documents at /docs, the console at /console, /openapi.json and
// /llms.txt.
import { buildSite, SITE } from "./site/build.ts";

const { pages, consoleBytes } = await buildSite();
console.log(`${pages} pages in ${SITE}, console ${(consoleBytes / 1024).toFixed(1)} KiB of script`);
