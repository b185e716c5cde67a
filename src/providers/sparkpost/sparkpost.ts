/** SparkPost, https://www.sparkpost.com. */
import type { Provider } from '../provider.ts';
import { SPARKPOST_EVENTS } from './events.ts';
import { SPARKPOST_RELAY } from './profile.ts';

export const SPARKPOST: Provider = {
  name: 'sparkpost',
  title: 'SparkPost',
  relay: SPARKPOST_RELAY,
  events: SPARKPOST_EVENTS,
};
