"""The custom resource as pydantic models; the CustomResourceDefinition is made from them."""

from headway_operator.api.spec import InferenceServiceSpec
from headway_operator.api.status import Condition, ConditionType, InferenceServiceStatus

GROUP = "headway.dev"
VERSION = "v1alpha1"
KIND = "InferenceService"
PLURAL = "inferenceservices"
API_VERSION = f"{GROUP}/{VERSION}"

MAX_NAME_LENGTH = 50
"""Longest name of a service: children append to it and must stay valid names."""

__all__ = [
    "API_VERSION",
    "GROUP",
    "KIND",
    "MAX_NAME_LENGTH",
    "PLURAL",
    "VERSION",
    "Condition",
    "ConditionType",
    "InferenceServiceSpec",
    "InferenceServiceStatus",
]
