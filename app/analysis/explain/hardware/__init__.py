"""Explanations of hardware objects: devices, pools and slices, classes, patches, rules, nodes.

Belongs here: reasons about one such object, from views and events. Does not belong here: pods and
claims; their modules are in the package above. Imported by the service that explains.
"""
