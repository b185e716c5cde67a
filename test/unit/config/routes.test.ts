import { expect, test } from 'vitest';
import { describeSettings, loadSettings } from '../../../src/config/load.ts';

const RELAY = 'smtp://user:geheim@relay.example:587?tls=required';

test('further routes are settings in order of name, from variables or files, and never show a password', () => {
  const environment = {
    POSTRIDER_TRANSPORT: RELAY,
    POSTRIDER_ROUTE_SPARE_FILE: '/run/spare',
    POSTRIDER_ROUTE_BACKUP: `${RELAY}&daily=500&ramp=14d`,
    POSTRIDER_ROUTE_SES2: 'ses://eu-west-1?daily=7',
  };
  const readFile = () => `${RELAY}\n`;
  const { routes, secretFiles } = loadSettings(environment, null, readFile);
  expect(routes.map(({ name }) => name)).toEqual(['default', 'backup', 'ses2', 'spare']);
  expect(routes[1]?.transport).toMatchObject({ kind: 'smtp', limits: { daily: 500, rampMs: 14 * 86_400_000 } });
  expect(routes[2]?.transport).toMatchObject({ kind: 'ses', limits: { daily: 7, rampMs: null } });
  expect(secretFiles).toEqual([{ name: 'POSTRIDER_ROUTE_SPARE', path: '/run/spare' }]);
  const described = describeSettings(environment, null, readFile).filter(({ name }) => name.includes('_ROUTE_'));
  expect(described.map(({ name, source }) => [name, source])).toEqual([
    ['POSTRIDER_ROUTE_BACKUP', 'environment'],
    ['POSTRIDER_ROUTE_SES2', 'environment'],
    ['POSTRIDER_ROUTE_SPARE', 'file'],
  ]);
  expect(JSON.stringify(described)).not.toContain('geheim');
});

test.each([
  ['POSTRIDER_ROUTE_DEFAULT', RELAY, 'POSTRIDER_TRANSPORT'],
  ['POSTRIDER_ROUTE_', RELAY, 'names no route'],
  ['POSTRIDER_ROUTE_MY_RELAY', RELAY, 'up to 30 letters and digits'],
  ['POSTRIDER_ROUTE_2ND', RELAY, 'names no route'],
  [`POSTRIDER_ROUTE_${'A'.repeat(32)}`, RELAY, 'names no route'],
  ['POSTRIDER_ROUTE_B', '', 'is empty'],
  ['POSTRIDER_ROUTE_B', 'capture:', 'capture: is valid only in POSTRIDER_TRANSPORT'],
  ['POSTRIDER_ROUTE_B', `${RELAY}&daily=0`, 'daily must be a number'],
  ['POSTRIDER_ROUTE_B', `${RELAY}&ramp=2y`, 'ramp must be a duration'],
  ['POSTRIDER_ROUTE_B', 'smtp://user:geheim@', 'has no host'],
])('%s=%s is refused with one line', (name, value, text) => {
  const load = () => loadSettings({ [name]: value }, null);
  expect(load).toThrow(text);
  expect(load).toThrow(new RegExp(`^${name}[^\n]*$`));
  expect(load).not.toThrow('geheim');
});
