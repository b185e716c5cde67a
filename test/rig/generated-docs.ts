/** Writes the generated pages (`npm run docs`). */
import { writeFileSync } from 'node:fs';
import { createOpenApiDocument } from '../../src/http/openapi.ts';
import { formatLogEventsPage } from '../../src/observability/log-events.ts';
import { CONFIGURATION_PAGE, generateConfigurationPage, readConfigurationPage } from './configuration-page.ts';

writeFileSync(CONFIGURATION_PAGE, generateConfigurationPage(readConfigurationPage()));
writeFileSync(new URL('../../docs/log-events.md', import.meta.url), formatLogEventsPage());
writeFileSync(new URL('../../openapi.json', import.meta.url), `${JSON.stringify(createOpenApiDocument(), null, 2)}\n`);
