/** The entries of the sidebar by group. Each entry has a page in pages/index.ts. */
import {
  IconAdjustmentsHorizontal,
  IconBook2,
  IconChartBar,
  IconCloudComputing,
  IconFileText,
  IconHeartbeat,
  IconInbox,
  IconKey,
  IconLayoutDashboard,
  IconMail,
  IconMailOff,
  IconMessageReport,
  IconPlayerPause,
  IconRoute,
  IconUser,
  IconWebhook,
  IconWorld,
  type TablerIcon,
} from '@tabler/icons-react';

export interface MenuItem {
  readonly label: string;
  readonly to: string;
  readonly Icon: TablerIcon;
  /** If set, the entry is shown only with this transport. */
  readonly transport?: 'capture';
}

export const MENU: readonly { readonly group: string | null; readonly items: readonly MenuItem[] }[] = [
  {
    group: null,
    items: [
      { label: 'Overview', to: '/', Icon: IconLayoutDashboard },
      { label: 'Messages', to: '/messages', Icon: IconMail },
      { label: 'Deliverability', to: '/deliverability', Icon: IconChartBar },
      { label: 'Inbox', to: '/inbox', Icon: IconInbox, transport: 'capture' },
    ],
  },
  {
    group: 'Sending',
    items: [
      { label: 'Accounts', to: '/accounts', Icon: IconUser },
      { label: 'Domains', to: '/domains', Icon: IconWorld },
      { label: 'Suppressions', to: '/suppressions', Icon: IconMailOff },
      { label: 'Routes', to: '/routes', Icon: IconRoute },
      { label: 'Holds', to: '/holds', Icon: IconPlayerPause },
    ],
  },
  {
    group: 'Integrations',
    items: [
      { label: 'Webhooks', to: '/webhooks', Icon: IconWebhook },
      { label: 'Feedback', to: '/feedback', Icon: IconMessageReport },
      { label: 'Providers', to: '/providers', Icon: IconCloudComputing },
      { label: 'API reference', to: '/api-reference', Icon: IconBook2 },
    ],
  },
  {
    group: 'System',
    items: [
      { label: 'Health', to: '/health', Icon: IconHeartbeat },
      { label: 'Audit log', to: '/audit', Icon: IconFileText },
      { label: 'API tokens', to: '/tokens', Icon: IconKey },
      { label: 'Settings', to: '/settings', Icon: IconAdjustmentsHorizontal },
    ],
  },
];
