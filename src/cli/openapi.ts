/** `postrider openapi`: the OpenAPI document of the public interface, generated from the schemas of the listener. */
import type { Command } from 'commander';
import type { Context } from './context.ts';

/** Adds the command. */
export function addOpenApiCommand(program: Command, context: Context): void {
  const openapi = program.command('openapi').description('print the OpenAPI document of the public interface');
  // The document is always JSON; every command accepts the flag.
  openapi.option('--json', 'no effect: the document is JSON');
  openapi.action(async () => {
    const { openApiDocument } = await import('../http/openapi.ts');
    context.out(`${JSON.stringify(openApiDocument(), null, 2)}\n`);
  });
}
