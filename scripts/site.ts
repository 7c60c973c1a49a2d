// Builds what is served beside the API: the documents at /docs, /openapi.json and /llms.txt, into site/.
import { buildSite, SITE } from "./site/build.ts";

const pages = await buildSite();
console.log(`${pages} pages in ${SITE}`);
