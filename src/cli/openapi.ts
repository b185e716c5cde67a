/** `postrider openapi`: the OpenAPI document of the public interface, generated from the schemas of the listener. */
import type { Command } from 'commander';
import type { Context } from './context.ts';

/** Adds `openapi` to `program`. */
export function addOpenApiCommand(program: Command, context: Context): void {
  const openapi = program.command('openapi').description('print the OpenAPI document of the public interface');
  // The document is always JSON. The flag exists because every command accepts `--json`.
  openapi.option('--json', 'no effect: the document is JSON');
  openapi.action(async () => {
    const { createOpenApiDocument } = await import('../http/openapi.ts');
    context.writeText(`${JSON.stringify(createOpenApiDocument(), null, 2)}\n`);
  });
}
