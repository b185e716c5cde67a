// Runs after `npm ci` and `npm install` in a checkout: links the command of the checkout and builds the dashboard.
import { buildDashboard, canBuild } from './build-dashboard.js';
import { linkCommand } from './link.js';

// `npm pack` and `npm publish` run `prepack`, which builds everything, and then this script.
if (process.env.npm_command !== 'pack' && process.env.npm_command !== 'publish') {
  if (canBuild()) {
    linkCommand();
    await buildDashboard({ fresh: false });
  } else {
    process.stderr.write(
      'postrider: the dashboard cannot be built, because the development dependencies are missing; run `npm ci` without `--omit=dev` in a checkout, or install the package\n',
    );
    process.exitCode = 1;
  }
}
